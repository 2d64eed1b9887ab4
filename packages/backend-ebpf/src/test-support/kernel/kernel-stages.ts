// Stages in the kernel for one host after another: the kit's hosts have no end, and two of them are used at once at most.
import type { EbpfWorld } from "../../world.ts";
import type { StageFolders } from "./kernel-stage.ts";
import { KernelStage } from "./kernel-stage.ts";
import { KernelMachine } from "./kernel-machine.ts";

/** How many hosts are used at once: one that is asked, and one that it is compared with. */
const STAGES = 2;

/** Makes machines; the oldest one's stage is given to the next. */
export class KernelStages {
  readonly #folders: StageFolders;
  readonly #objectFiles: Partial<EbpfWorld["objectFiles"]>;
  readonly #used: { readonly stage: KernelStage; readonly machine: KernelMachine }[] = [];
  #questions = 0;
  #machines = 0;

  constructor(folders: StageFolders, objectFiles: Partial<EbpfWorld["objectFiles"]>) {
    this.#folders = folders;
    this.#objectFiles = objectFiles;
  }

  /** How many packets were given to programs, by how many machines. */
  get counts(): { readonly packets: number; readonly machines: number } {
    return { packets: this.#questions + this.#used.reduce((sum, { machine }) => sum + machine.questions, 0), machines: this.#machines };
  }

  create(): KernelMachine {
    const stage = this.#used.length < STAGES ? new KernelStage(`stage${this.#used.length + 1}`, this.#folders) : this.#reuse();
    const machine = new KernelMachine(stage, this.#objectFiles);
    this.#used.push({ stage, machine });
    this.#machines++;
    return machine;
  }

  close(): void {
    for (const { stage, machine } of this.#used.splice(0)) {
      stage.enter();
      machine.close();
      stage.close();
    }
  }

  #reuse(): KernelStage {
    const oldest = this.#used.shift();
    if (oldest === undefined) throw new Error("there are stages");
    const { stage, machine } = oldest;
    stage.enter();
    machine.close();
    this.#questions += machine.questions;
    stage.reset();
    return stage;
  }
}
