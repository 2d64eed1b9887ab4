import type { BenchCase } from "../case.ts";
import { change } from "./change.ts";
import { changeSets } from "./change-sets.ts";
import { clientInstall } from "./client-install.ts";
import { coldStart } from "./cold-start.ts";
import { connect } from "./connect.ts";
import { counting } from "./counting.ts";
import { ebpfCase } from "./ebpf.ts";
import { firstState } from "./first-state.ts";
import { flip } from "./flip.ts";
import { iptablesCase } from "./iptables.ts";
import { ipvsCase } from "./ipvs.ts";
import { kpng } from "./kpng.ts";
import { memory } from "./memory.ts";
import { relay } from "./relay.ts";
import { restart } from "./restart.ts";
import { rivals } from "./rivals.ts";
import { start } from "./start.ts";
import { store } from "./store.ts";
import { traffic } from "./traffic.ts";
import { userspaceCase } from "./userspace.ts";
import { watchers } from "./watchers.ts";
import { why } from "./why.ts";

/** Every bench, in the order of the standard run. */
export const CASES: readonly BenchCase[] = [
  coldStart,
  change,
  start,
  memory,
  store,
  connect,
  restart,
  iptablesCase,
  ipvsCase,
  ebpfCase,
  traffic,
  counting,
  rivals,
  why,
  clientInstall,
  changeSets,
  flip,
  watchers,
  relay,
  firstState,
  kpng,
  userspaceCase,
];
