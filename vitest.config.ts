import { defineConfig } from "vitest/config";
import type { ViteUserConfig } from "vitest/config";

const conditions = ["@turnout/source"];

/**
 * Two projects for their order only: everything beside the sources first, then the packets, never both at once, and never
 * more than two files at a time (the development machine has two cores). `extends` hands the resolve conditions down.
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
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts", "bench/**/*.test.ts", "examples/*.test.ts"],
          sequence: { groupOrder: 0 },
        },
      },
      { extends: true, test: { name: "e2e", include: ["e2e/**/*.test.ts"], sequence: { groupOrder: 1 } } },
    ],
  },
});

export default config;
