import type { BackendModule } from "../../backend.ts";
import type { CreateFakeHost } from "./fake-host.ts";

/** Who is examined: a backend, and the host it thinks it works on. */
export interface Subject {
  readonly module: BackendModule;
  readonly createFakeHost: CreateFakeHost;
}
