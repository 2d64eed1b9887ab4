/** Flags of a load balancer. @source hcsshim hcn/hcnloadbalancer.go LoadBalancerFlags */
export const LB_FLAG = { dsr: 1, ipv6: 2 } as const;

/** Flags of a port mapping. VipExternalIP is known to kube-proxy alone. @source kube-proxy pkg/proxy/winkernel/hns.go */
export const PORT_FLAG = { internal: 1, localRoutedVip: 2, useMux: 4, preserveDip: 8, vipExternalIp: 16 } as const;

/** How an endpoint is chosen: by the whole connection, or by the client's address. */
export const DISTRIBUTION = { connection: 0, client: 2 } as const;

/** An endpoint of another host. */
export const REMOTE_ENDPOINT = 1;

/** Numbers of protocols. */
export const PROTOCOL_NUMBER = { TCP: 6, UDP: 17, SCTP: 132 } as const;
