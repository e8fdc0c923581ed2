"""Forms of secrets: those that the issuers publish for secret scanning.

AWS, GitHub, GitLab, Hugging Face, Slack, OpenAI, Anthropic, Google, npm, DigitalOcean, Weights & Biases, JSON
Web Tokens (RFC 7519), PEM (RFC 7468).
"""

from __future__ import annotations

# Kind of a secret -> its form. A form starts with a text that hardly anything else starts with.
# Its time grows with the text, not its square: if more follows a run of letters, it begins with the run.
FORMS = {
    "an AWS access key": r"\bA(?:KI|SI)A[0-9A-Z]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{30,255})\b",
    "a GitLab token": r"\bgl(?:pat|ptt|rt|dt)-[A-Za-z0-9_-]{20,}",
    "a Hugging Face token": r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}\b",
    "a Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "an API key": r"(?<![A-Za-z0-9_-])sk-(?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{20,}",
    "a Google API key": r"\bAIza[0-9A-Za-z_-]{35}",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "a DigitalOcean token": r"\bdo[opr]_v1_[0-9a-f]{64}\b",
    "a Weights & Biases key": r"\bwandb_v1_[A-Za-z0-9_-]{40,}",
    "a JSON Web Token": r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",
    "a private key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
}
# A text without any of these contains no form; searching for them costs a hundredth of matching the patterns.
STARTS = (
    *("AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "glptt-", "glrt-"),
    *("gldt-", "hf_", "api_org_", "xox", "sk-", "AIza", "npm_", "_v1_", "eyJ", "PRIVATE KEY"),
)
