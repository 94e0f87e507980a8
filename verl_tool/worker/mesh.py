"""The name of the mesh along which a batch is spread over rollout replicas."""

ROLLOUT_MESH = "rollout"
