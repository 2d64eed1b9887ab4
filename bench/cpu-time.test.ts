import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { threadsTimeUs } from "./cpu-time.ts";

/** Say what its CPU time was, then wait. */
const WORKER = `
  while (process.cpuUsage().user < 200_000);
  const { user, system } = process.cpuUsage();
  process.stdout.write(String(user + system));
  process.stdin.resume();
`;

describe("threadsTimeUs", () => {
  it("is what another process has used by its own account, finer than ticks", async () => {
    const worker = spawn(process.execPath, ["-e", WORKER], { stdio: ["pipe", "pipe", "inherit"] });
    try {
      const [said] = (await once(worker.stdout, "data")) as [Buffer];
      const ownUs = Number(said.toString());
      // It writes its answer and goes to wait, which takes it a moment.
      await new Promise((resolve) => setTimeout(resolve, 200));
      const us = threadsTimeUs(worker.pid ?? 0);
      expect(us).toBeGreaterThan(ownUs * 0.98);
      expect(us).toBeLessThan(ownUs * 1.25);
    } finally {
      worker.kill();
    }
  });
});
