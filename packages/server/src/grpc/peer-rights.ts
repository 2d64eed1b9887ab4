import type { PeerCertificate } from "node:tls";
import { ProxyError } from "@turnout/core";

/** Which nodes a connection may ask for. */
export interface PeerRights {
  /** @throws {ProxyError} `permission_denied` for a node that is not theirs. */
  check(nodeName: string): void;
  /** @throws {ProxyError} `permission_denied` for who may not ask for all nodes. */
  checkAll(): void;
  /** Who they are, in words for a log; the same for all streams of one. */
  readonly client: string;
  readonly mayAskForAll: boolean;
  /** The node they are, if they are one. */
  readonly ownNode: string | undefined;
}

const NODE_PREFIX = "system:node:";
const NAME_MAX = 300;

/** Finds out what the peer of a stream may do, from what its connection proved. */
export type PeerRightsOf = (certificate: PeerCertificate | undefined) => PeerRights;

/** Who reached us by a unix socket may ask for every node: the file's mode said who that is. */
export const ALL_RIGHTS: PeerRights = {
  check: () => undefined,
  checkAll: () => undefined,
  client: "the socket's clients",
  mayAskForAll: true,
  ownNode: undefined,
};

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
    const mayAskForAll = commonName !== "" && anyNode.has(commonName);
    return {
      client: `the certificate of ${said(commonName)}`,
      mayAskForAll,
      ownNode: commonName.startsWith(NODE_PREFIX) ? commonName.slice(NODE_PREFIX.length) : undefined,
      checkAll() {
        if (mayAskForAll) return;
        throw new ProxyError("permission_denied", `the certificate of ${said(commonName)} gives no right to ask for all nodes`, {
          hint: "its common name has to be one that this node-state server lets ask for any node",
        });
      },
      check(nodeName) {
        if (mayAskForAll || (commonName !== "" && commonName === `${NODE_PREFIX}${nodeName}`)) return;
        throw new ProxyError(
          "permission_denied",
          `the certificate of ${said(commonName)} may ask for ${own(commonName)}, not for this one`,
          {
            object: `node ${nodeName}`,
            hint: "its common name is system:node:NAME of the one node it may ask for, or one that this node-state server lets ask for any",
          },
        );
      },
    };
  };
}

/** Names come from a certificate, so from anybody our authority signed for: they are quoted, and kept short. */
function said(commonName: string): string {
  return commonName === "" ? "nobody (it has no single common name)" : JSON.stringify(commonName.slice(0, NAME_MAX));
}

function own(commonName: string): string {
  return commonName.startsWith(NODE_PREFIX) && commonName !== NODE_PREFIX
    ? `node ${JSON.stringify(commonName.slice(NODE_PREFIX.length, NAME_MAX))} alone`
    : "no node";
}
