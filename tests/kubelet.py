"""How the kubelet expands command words and variables and mounts ConfigMaps before a container starts."""

from gangplan.local.kubelet import expand as expand
from gangplan.local.kubelet import expand_container as expand_container
from gangplan.local.kubelet import read_mounted_map as read_mounted_map
