// Hosts of the conformance kit, one after another on two stages: the kit's hosts have no end, and two of them are used at once at most.
import { fileURLToPath } from "node:url";
import { createBpf } from "@turnout/host/bpf";
import type { LoadedObject } from "@turnout/host/bpf";
import type { EbpfWorld } from "../world.ts";
import { KernelHost } from "./kernel-host.ts";
import { KernelStage } from "./kernel-stage.ts";
import type { StageFolders } from "./kernel-stage.ts";

/** One host that is asked, and one that it is compared with. */
const STAGES = 2;
/** Programs that let all go. */
const OTHER_PROGRAM = fileURLToPath(new URL("../../dist/testing/other-program.bpf.o", import.meta.url));

/** Makes hosts; the next one gets the stage that was not used for longest. */
export class KernelHosts {
  readonly #folders: StageFolders;
  readonly #objectFiles: Partial<EbpfWorld["objectFiles"]>;
  readonly #otherProgram: LoadedObject;
  readonly #used: { readonly stage: KernelStage; readonly host: KernelHost }[] = [];
  #questions = 0;

  private constructor(folders: StageFolders, objectFiles: Partial<EbpfWorld["objectFiles"]>, otherProgram: LoadedObject) {
    this.#folders = folders;
    this.#objectFiles = objectFiles;
    this.#otherProgram = otherProgram;
  }

  /** Hosts with the programs as they were built, but for those of these files. */
  static async open(folders: StageFolders, objectFiles: Partial<EbpfWorld["objectFiles"]>): Promise<KernelHosts> {
    return new KernelHosts(folders, objectFiles, await createBpf().load(OTHER_PROGRAM));
  }

  /** How many packets were given to programs. */
  get packets(): number {
    return this.#used.reduce((sum, { host }) => sum + host.questions, this.#questions);
  }

  create(): KernelHost {
    const stage = this.#used.length < STAGES ? new KernelStage(`stage${this.#used.length + 1}`, this.#folders) : this.#reuse();
    stage.furnishExternal(this.#otherProgram);
    const host = new KernelHost(stage, this.#objectFiles);
    this.#used.push({ stage, host });
    return host;
  }

  close(): void {
    for (const { stage, host } of this.#used.splice(0)) {
      host.close();
      stage.close();
    }
    this.#otherProgram.close();
  }

  #reuse(): KernelStage {
    const [oldest] = this.#used.sort((a, b) => a.stage.usedAt - b.stage.usedAt).splice(0, 1);
    if (oldest === undefined) throw new Error("there are stages");
    const { stage, host } = oldest;
    host.close();
    this.#questions += host.questions;
    stage.reset();
    return stage;
  }
}
