import type { PeerCertificate } from "node:tls";
import { ProxyError } from "@turnout/core";

/** Which nodes a connection may ask for. */
export interface PeerRights {
  /** @throws {ProxyError} `permission_denied` for a node that is not theirs. */
  check(nodeName: string): void;
}

const NODE_PREFIX = "system:node:";

/** Finds out what the peer of a stream may do, from what its connection proved. */
export type PeerRightsOf = (certificate: PeerCertificate | undefined) => PeerRights;

/** Who reached us by a unix socket may ask for every node: the file's mode said who that is. */
export const ALL_RIGHTS: PeerRights = { check: () => undefined };

/**
 * What a certificate's common name gives a right to.
 *
 * Shape: `system:node:NAME`, as kubelets have it, may ask for NAME; the names in `anyNode` may ask for any node.
 * Edges: no certificate, and one without a single common name, give no right at all.
 */
export function certificateRights(anyNode: ReadonlySet<string>): PeerRightsOf {
  return (certificate) => {
    const given: unknown = certificate?.subject.CN;
    const commonName = typeof given === "string" ? given : "";
    return {
      check(nodeName) {
        if (commonName !== "" && (anyNode.has(commonName) || commonName === `${NODE_PREFIX}${nodeName}`)) return;
        throw new ProxyError("permission_denied", `the certificate of ${JSON.stringify(commonName)} gives no right to ask for this node`, {
          object: `node ${nodeName}`,
          hint: `its common name has to be ${NODE_PREFIX}${nodeName}, or one that may ask for any node`,
        });
      },
    };
  };
}
