import type { NodeSettings } from "@turnout/core";

/** What a watcher asks for: the same question gets the same view. */
export interface NodeQuestion {
  readonly nodeName: string;
  readonly settings: NodeSettings;
  /** Canonical, "" for none. */
  readonly bindAddress: string;
}
