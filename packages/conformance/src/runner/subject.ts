import type { BackendModule } from "@turnout/core";
import type { CreateFakeHost } from "./fake-host.ts";

/** Who is examined: a backend, and the host it thinks it works on. */
export interface Subject {
  readonly module: BackendModule;
  readonly createFakeHost: CreateFakeHost;
}
