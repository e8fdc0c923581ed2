"""How the kubelet expands command words and variables and mounts ConfigMaps before a container starts."""

from gangplan.local.kubelet import expand as expand
from gangplan.local.kubelet import mounted_map as mounted_map
from gangplan.local.kubelet import started as started
