import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, open, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runIsolated } from "./npm.ts";

const STARTS_WITHIN_MS = 60_000;

/** A registry of this machine's own. */
export interface Registry {
  readonly url: string;
  /** npm's configuration for a user that may publish here. */
  readonly userconfig: string;
  close(): Promise<void>;
}

/**
 * Start verdaccio on a free port of loopback. `@turnout/*` is only what was published here; everything else comes from the registry that
 * npm uses on this machine.
 */
export async function startRegistry(tools: string, folder: string): Promise<Registry> {
  await mkdir(folder, { recursive: true });
  const port = await freePort();
  const uplink = (await runIsolated({}, folder, ["npm", "config", "get", "registry"])).trim();
  await writeFile(join(folder, "config.yaml"), configText(folder, uplink));
  const log = await open(join(folder, "log"), "w");
  const program = join(tools, "node_modules", "verdaccio", "bin", "verdaccio");
  const args = [program, "--config", join(folder, "config.yaml"), "--listen", `127.0.0.1:${port}`];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ["ignore", log.fd, log.fd] });
  const url = `http://127.0.0.1:${port}/`;
  const userconfig = join(folder, "npmrc");
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.kill()) await once(child, "exit");
    await log.close();
  };
  try {
    await untilUp(url, () => child.exitCode !== null);
    const cache = join(folder, "npm-cache");
    const lines = [
      `registry=${url}`,
      // npm publishes only with a token; this registry takes any.
      `//127.0.0.1:${port}/:_authToken=any`,
      `cache=${cache}`,
      "audit=false",
      "fund=false",
      "update-notifier=false",
    ];
    await writeFile(userconfig, `${lines.join("\n")}\n`);
    return { url, userconfig, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function configText(folder: string, uplink: string): string {
  return JSON.stringify({
    storage: join(folder, "storage"),
    uplinks: { machine: { url: uplink, timeout: "120s", max_fails: 10 } },
    packages: {
      "@turnout/*": { access: "$all", publish: "$all" },
      "**": { access: "$all", proxy: "machine" },
    },
    max_body_size: "100mb",
    web: { enable: false },
    log: { type: "stdout", format: "pretty", level: "warn" },
  });
}

async function untilUp(url: string, hasEnded: () => boolean): Promise<void> {
  const deadline = Date.now() + STARTS_WITHIN_MS;
  for (;;) {
    try {
      await fetch(`${url}-/ping`);
      return;
    } catch (error) {
      if (hasEnded() || Date.now() > deadline) throw error;
      await sleep(200);
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
