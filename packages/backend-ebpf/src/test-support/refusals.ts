// Worlds in which the kernel or nft refuses what a node needs to be served.
import { ProxyError } from "@turnout/core/backend";
import { replacing } from "@turnout/core/testing";
import type { EbpfWorld } from "../world.ts";

const NO = new ProxyError("tool_failed", "no (EINVAL)");

/** What the kernel or nft says no to until that is over. */
export const REFUSALS: Readonly<Record<string, (world: EbpfWorld, refusal: { readonly isOver: boolean }) => Partial<EbpfWorld>>> = {
  hooks: ({ bpf: real }, refusal) => ({
    bpf: replacing(real, {
      attachToCgroup(program, folder, hook) {
        if (!refusal.isOver && hook === "sendmsg4") throw NO;
        return real.attachToCgroup(program, folder, hook);
      },
    }),
  }),
  programs: ({ bpf: real }, refusal) => ({
    bpf: replacing(real, {
      load: (path, options) => (!refusal.isOver && path.includes("packets") ? Promise.reject(NO) : real.load(path, options)),
    }),
  }),
  table: ({ exec }, refusal) => {
    const refused = { code: 1, stdout: "", stderr: "Error: Could not process rule: no\n" };
    const isRefused = (text = ""): boolean => !refusal.isOver && text.includes("add table");
    const run: typeof exec.run = (file, args, options) =>
      isRefused(options?.input) && !args.includes("--check") ? Promise.resolve(refused) : exec.run(file, args, options);
    const open: typeof exec.open = (file, args) => {
      const started = exec.open(file, args);
      const finish: typeof started.finish = (input, options) =>
        isRefused(input) ? Promise.resolve(refused) : started.finish(input, options);
      return { pid: started.pid, close: () => started.close(), finish };
    };
    return { exec: { run, open } };
  },
  devices: ({ bpf: real }, refusal) => ({
    bpf: replacing(real, {
      attachTc(program, way, name) {
        if (!refusal.isOver) throw NO;
        return real.attachTc(program, way, name);
      },
    }),
  }),
};
