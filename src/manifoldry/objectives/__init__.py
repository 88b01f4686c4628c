"""What iterative methods minimise: functions of the map's coordinates, with their derivatives."""
