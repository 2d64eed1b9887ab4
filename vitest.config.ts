import { defineConfig } from "vitest/config";
import type { ViteUserConfig } from "vitest/config";
import { BaseSequencer } from "vitest/node";
import type { TestSpecification } from "vitest/node";

const conditions = ["@turnout/source"];

/** It plays in a guest with one CPU and takes minutes; among the other files of e2e it would be left alone at the end. */
const IN_VM = "e2e/ipvs.test.ts";

/** Files that take minutes, the longest first. They are small, and as long as vitest knows no times it begins with the largest. */
const LONGEST: readonly string[] = [
  IN_VM,
  "packages/backend-ebpf/src/module-kernel.test.ts",
  "examples/examples.test.ts",
  "scripts/status.test.ts",
  "packages/backend-ebpf/src/packets-kernel.test.ts",
  "packages/backend-ipvs/src/conformance.test.ts",
  "packages/backend-iptables/src/conformance.test.ts",
  "packages/backend-winkernel/src/conformance.test.ts",
  "packages/backend-ebpf/src/conformance.test.ts",
  "packages/backend-ebpf/src/kernel-conformance.test.ts",
  "packages/backend-ebpf/src/node-kernel.test.ts",
  "packages/backend-nft/src/conformance.test.ts",
  "packages/backend-ebpf/src/sockets-kernel.test.ts",
  "scripts/packages.test.ts",
  "e2e/conformance.test.ts",
  "e2e/ebpf.test.ts",
];

/** Begins with what takes longest, so that no file is left that runs alone at the end. Vitest itself keeps the projects apart. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const index = LONGEST.findIndex((file) => moduleId.endsWith(`/${file}`));
      return index === -1 ? LONGEST.length : index;
    };
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => place(a) - place(b));
  }
}

/**
 * Two projects for their order only: everything beside the sources first, then the packets of this kernel, never both at once, and
 * never more than three files at a time: the development machine has two cores, and tests on the kernel wait a third of their time.
 * `extends` hands the resolve conditions down.
 */
const config: ViteUserConfig = defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    reporters: ["default", "./scripts/closing-line-reporter.ts"],
    // Upper bounds for a machine that is busy with other things, too: what passes waits for events and never for these.
    testTimeout: 120_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: [
            "packages/*/src/**/*.test.ts",
            "scripts/**/*.test.ts",
            "bench/**/*.test.ts",
            "examples/*.test.ts",
            "site/**/*.test.ts",
            IN_VM,
          ],
          sequence: { groupOrder: 0 },
        },
      },
      { extends: true, test: { name: "e2e", include: ["e2e/**/*.test.ts"], exclude: [IN_VM], sequence: { groupOrder: 1 } } },
    ],
  },
});

export default config;
