import { defineConfig } from "vitest/config";

const conditions = ["@turnout/source"];

// One root config: `projects` would not inherit the resolve conditions that make packages resolve to their sources.
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts", "e2e/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
