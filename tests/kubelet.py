"""How the kubelet expands command words and variables before a container starts."""

from gangplan.local.kubelet import expand as expand
from gangplan.local.kubelet import started as started
