import type { Harness } from "../line-channel.ts";
import { adopt } from "./adopt.ts";
import { apiServer } from "./api-server.ts";
import { backendAdopt, backendRestore, backendRun } from "./backend-run.ts";
import { baseline } from "./baseline.ts";
import { stateServer } from "./state-server.ts";
import { changes } from "./changes.ts";
import { coldStart } from "./cold-start.ts";
import { connectClient, connectServer } from "./connect-ends.ts";
import { connect } from "./connect.ts";
import { daemon } from "./daemon.ts";
import { fileWriter } from "./file-writer.ts";
import { firstState } from "./first-state.ts";
import { flips } from "./flips.ts";
import { iptablesBare, iptablesReload, iptablesRun } from "./iptables.ts";
import { ipvsAdopt, ipvsReload, ipvsRun } from "./ipvs.ts";
import { kpngServer } from "./kpng-server.ts";
import { relay } from "./relay.ts";
import { rival } from "./rival.ts";
import { storeOnly } from "./store-only.ts";
import { traces } from "./traces.ts";
import { trafficClient, trafficServer } from "./traffic.ts";
import { userspaceServer } from "./userspace-ends.ts";
import { userspace } from "./userspace.ts";
import { watchers } from "./watchers.ts";

/** Everything a measured process can be told to do, by name. */
export const ROLES: Readonly<Record<string, (parameters: never, harness: Harness) => Promise<unknown>>> = {
  adopt,
  "api-server": apiServer,
  "backend-adopt": backendAdopt,
  "backend-restore": backendRestore,
  "backend-run": backendRun,
  baseline,
  stateServer,
  changes,
  "cold-start": coldStart,
  connect,
  "connect-client": connectClient,
  "connect-server": connectServer,
  daemon,
  "file-writer": fileWriter,
  "first-state": firstState,
  flips,
  "iptables-bare": iptablesBare,
  "iptables-reload": iptablesReload,
  "iptables-run": iptablesRun,
  "ipvs-adopt": ipvsAdopt,
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
  "userspace-server": userspaceServer,
  watchers,
};
