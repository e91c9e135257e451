"""What the chart can write in front of the gateway: rules of its route, and the resources of agentgateway."""
