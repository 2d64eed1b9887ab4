import type { Harness } from "../line-channel.ts";
import { backendAdopt, backendRestart, backendRestore, backendRun } from "./backend-run.ts";
import { baseline } from "./baseline.ts";
import { stateServer } from "./state-server.ts";
import { daemon } from "./daemon.ts";
import { firstState } from "./first-state.ts";
import { flips } from "./flips.ts";
import { iptablesBare, iptablesReload, iptablesRun } from "./iptables.ts";
import { ipvsReload, ipvsRun } from "./ipvs.ts";
import { kpngServer } from "./kpng-server.ts";
import { apiServer, fileWriter } from "./providers.ts";
import { relay } from "./relay.ts";
import { rival } from "./rival.ts";
import { storeOnly } from "./store-only.ts";
import { traces } from "./traces.ts";
import { trafficClient, trafficServer } from "./traffic.ts";
import { userspace } from "./userspace.ts";

/** Everything a measured process can be told to do, by name. */
export const ROLES: Readonly<Record<string, (parameters: never, harness: Harness) => Promise<unknown>>> = {
  "api-server": apiServer,
  "backend-adopt": backendAdopt,
  "backend-restart": backendRestart,
  "backend-restore": backendRestore,
  "backend-run": (parameters: never) => backendRun(parameters),
  baseline,
  stateServer,
  daemon,
  "file-writer": fileWriter,
  "first-state": firstState,
  flips,
  "iptables-bare": iptablesBare,
  "iptables-reload": iptablesReload,
  "iptables-run": iptablesRun,
  "ipvs-reload": ipvsReload,
  "ipvs-run": ipvsRun,
  "kpng-server": kpngServer,
  relay,
  rival,
  "store-alone": storeOnly,
  traces,
  "traffic-client": trafficClient,
  "traffic-server": trafficServer,
  userspace,
};
