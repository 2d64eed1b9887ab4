import { withBackend, withHost } from "../runner/changed-subject.ts";
import type { Defect } from "./broken-backend.ts";

const SHOWS_NOTHING = withHost(() => ({ own: () => [], external: () => [], tamper: () => undefined, setFault: () => undefined }));

/** Hosts that hide what the kit would have to see. */
export const BROKEN_HOSTS: Readonly<Record<string, Defect>> = {
  "has a host that shows nothing of its own": ["the contract: the host's own()", withHost(() => ({ own: () => [] })), ["contract"]],
  "has a host that always shows the same as its own": [
    "the contract: the host's own()",
    withHost(() => ({ own: () => ["a table"] })),
    ["contract"],
  ],
  "has a host with nothing foreign": ["the contract: the host's foreign()", withHost(() => ({ external: () => [] })), ["contract"]],
  "has a host that nobody tampers with": ["the contract: the host's tamper()", withHost(() => ({ tamper: () => undefined })), ["contract"]],
  "has a host where tampering does nothing": [
    "the contract: the host's tamper()",
    withHost(() => ({ tamper: () => "delete everything" })),
    ["contract"],
  ],
  "has a host where nothing fails": ["the contract: the host's setFault()", withHost(() => ({ setFault: () => undefined })), ["contract"]],
  "has a host that fails only before a change": [
    "the contract: the host's setFault()",
    withHost((host) => ({ setFault: (fault) => host.setFault(fault?.when === "before" ? fault : undefined) })),
    ["contract"],
  ],
  "has a host that remembers no flows": [
    "the contract: the host's flows",
    withHost((host) => ({ connect: (packet, random) => host.trace(packet, random) })),
    ["contract"],
  ],
  "cleans up nothing on a host that shows nothing": [
    "the contract: cleanup",
    (subject) => SHOWS_NOTHING(withBackend(() => ({ cleanup: () => Promise.resolve() }))(subject)),
    ["contract"],
  ],
};
