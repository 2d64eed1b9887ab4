import type { Sockets } from "@turnout/client/sockets";
import type { LinuxWorld } from "@turnout/host";

/** What this backend touches. */
export interface UserspaceWorld extends LinuxWorld {
  readonly sockets: Sockets;
  /** In [0, 1). */
  readonly random: () => number;
  /** Whether this process may give the host addresses. */
  readonly canOwnAddresses: () => Promise<boolean>;
}
