"""Prices of pools and budgets of teams, as a cluster file states them."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from gangplan.spec.base import Name, Price, ReadBy, Strict, parse_spec_price


def _parse_percent_value(value: Any) -> Decimal:
    return parse_spec_price(value, "a percentage", "Write a number from 0 to 100, such as 65 or 12.5.", 100)


def _parse_money_amount(value: Any) -> Decimal:
    help = "Write an amount of money such as 20000, without a currency."
    return parse_spec_price(value, "an amount of money", help, 10**12)


Amount = Annotated[Decimal, ReadBy(_parse_money_amount, {"type": ["number", "string"]})]
Percent = Annotated[Decimal, ReadBy(_parse_percent_value, {"type": ["number", "string"]})]


class PoolPrice(Strict):
    """The price of a pool, for reports and budgets."""

    per_gpu_hour: Price | None = Field(None, description="Price of one GPU for an hour.", examples=["1.5625"])
    per_cpu_hour: Price | None = Field(
        None, description="Price of one CPU core for an hour, for pools without GPUs.", examples=["0.04"]
    )
    discount: Percent = Field(
        Decimal(0),
        description="Percentage taken off the prices, if they are list prices: for spot capacity, a commitment or a contract; omitted: none.",
        examples=[65],
    )

    def net(self, price: Decimal | None) -> Decimal | None:
        """Return a price after the discount, exactly."""
        off = self.discount
        return price if price is None or not off else price * (100 - off).scaleb(-2)


class Budget(Strict):
    """What all active runs of a team on the cluster, or on several, may cost in a month."""

    amount: Amount = Field(description="Money for a month.", examples=["20000"])
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = Field(
        None, description="Its currency, which is that of the cluster's prices.", examples=["EUR"]
    )
    clusters: tuple[Name, ...] = Field(
        (),
        max_length=256,
        description="Other clusters that the budget covers, with prices in the same currency; omitted: only this cluster.",
        examples=[("us-cloud",)],
    )
    warn_at: int = Field(
        80,
        ge=1,
        le=100,
        description="Share of the amount, in percent, from which budget-nearly is reported.",
        examples=[80],
    )
    action: Literal["Deny", "Warn"] = Field(
        "Deny",
        description="What a breach leads to: Deny (error) or Warn (warning).",
        examples=["Warn"],
    )
