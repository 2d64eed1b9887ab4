import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ClusterApi } from "@turnout/lab";
import { createSite, CLUSTER_CIDR } from "../site.ts";
import type { Site } from "../site.ts";
import { createVictims, VICTIM } from "./victims.ts";
import type { Victims } from "./victims.ts";

const FLOOD: string = fileURLToPath(new URL("./flood-main.ts", import.meta.url));
/** So that one client can be many. */
const MANY_ADDRESSES = "10.128.0.0/14";

/** What an attack is played with. */
export interface Arena {
  readonly api: ClusterApi;
  readonly apiAddress: string;
  readonly nodeAddress: string;
  /** The address of the victim's only endpoint. */
  readonly victimPod: string;
  /** The address of a pod of the tenant, which serves. */
  readonly thiefPod: string;
  /** Have a client outside send what flood-main.ts says, to its end or until `signal` aborts. @throws {Error} if it fails. */
  flood(args: readonly string[], signal?: AbortSignal): Promise<void>;
}

/** One node with a real proxy, a tenant who means harm, and victims. */
export interface Stage {
  readonly arena: Arena;
  readonly site: Site;
  readonly victims: Victims;
}

/** Build it; the victims are served. */
export async function createStage(backend: string): Promise<Stage> {
  const site = await createSite({
    nodes: [{ name: "node1", zone: "a", pods: 4 }],
    families: ["IPv4"],
    layout: "one process",
    cgroups: ["node1"],
    isInParts: true,
    flags: [...CLUSTER_CIDR, "--backend", backend],
  });
  try {
    const client = site.place("client1");
    await client.run("ip", ["route", "add", "local", MANY_ADDRESSES, "dev", "lo"]);
    const addressOf = (name: string): string => site.place(name).address("IPv4");
    const flood = async (args: readonly string[], signal?: AbortSignal): Promise<void> => {
      const flags = ["--conditions=@turnout/source", "--disable-warning=ExperimentalWarning"];
      const child = client.spawn(process.execPath, [...flags, FLOOD, ...args], { stdio: ["ignore", "inherit", "inherit"] });
      const end = (): void => void child.kill("SIGKILL");
      signal?.addEventListener("abort", end, { once: true });
      if (signal?.aborted === true) end();
      const [code] = (await once(child, "exit")) as [code: number | null];
      if (code !== 0 && code !== null) throw new Error(`the flood ended with ${code}`);
    };
    const arena: Arena = {
      api: site.api,
      apiAddress: site.cluster.fabric.address("IPv4"),
      nodeAddress: addressOf("node1"),
      victimPod: addressOf(VICTIM),
      thiefPod: addressOf("pod-1-4"),
      flood,
    };
    return { arena, site, victims: await createVictims(site) };
  } catch (error) {
    await site.destroy();
    throw error;
  }
}
