/** Name and version of the family. @source linux/ip_vs.h */
export const IPVS_FAMILY = "IPVS";
/** @source linux/ip_vs.h IPVS_GENL_VERSION */
export const IPVS_VERSION = 1;

/** Commands. @source linux/ip_vs.h IPVS_CMD_* */
export const COMMAND = {
  newService: 1,
  setService: 2,
  delService: 3,
  getService: 4,
  newDest: 5,
  setDest: 6,
  delDest: 7,
  getDest: 8,
  setConfig: 12,
  getConfig: 13,
  getInfo: 15,
} as const;

/** Attributes of a message. @source linux/ip_vs.h IPVS_CMD_ATTR_* */
export const ATTR = { service: 1, dest: 2, timeoutTcp: 4, timeoutTcpFin: 5, timeoutUdp: 6 } as const;

/** Attributes of a virtual server. @source linux/ip_vs.h IPVS_SVC_ATTR_* */
export const SVC = {
  family: 1,
  protocol: 2,
  address: 3,
  port: 4,
  firewallMark: 5,
  scheduler: 6,
  flags: 7,
  timeout: 8,
  netmask: 9,
  stats: 10,
  stats64: 12,
} as const;

/** Attributes of counters: of 32 or 64 bits, connections always of 32 where there are no 64. @source linux/ip_vs.h IPVS_STATS_ATTR_* */
export const STATS = { connections: 1, bytesIn: 4, bytesOut: 5 } as const;

/** Attributes of a real server. @source linux/ip_vs.h IPVS_DEST_ATTR_* */
export const DEST = {
  address: 1,
  port: 2,
  forward: 3,
  weight: 4,
  upperThreshold: 5,
  lowerThreshold: 6,
  activeConnections: 7,
  inactiveConnections: 8,
  family: 11,
} as const;

/** Attributes of the answer to getInfo. @source linux/ip_vs.h IPVS_INFO_ATTR_* */
export const INFO = { version: 1 } as const;

/** The kernel's own note that a virtual server is in its table; one that comes with it is not put there. @source Linux ip_vs_svc_hash */
export const HASHED_FLAG = 0x2;

/** Protocol numbers. @source linux/in.h */
export const PROTOCOL_NUMBER = { TCP: 6, UDP: 17, SCTP: 132 } as const;
