"""How the kubelet expands command words and variables and mounts ConfigMaps before a container starts."""

from gangplan.local.kubelet import expand_like_kubelet as expand_like_kubelet
from gangplan.local.kubelet import expand_local_container_like_kubelet as expand_local_container_like_kubelet
from gangplan.local.kubelet import read_config_map_for_local_mount as read_config_map_for_local_mount
