import type { NodeSettings } from "@turnout/core";

/** What a watcher asks for: the same request gets the same view. */
export interface NodeStateRequest {
  readonly nodeName: string;
  readonly settings: NodeSettings;
  /** Canonical, "" for none. */
  readonly bindAddress: string;
}
