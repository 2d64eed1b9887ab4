// Sockets of scenarios that stay connected while something changes.
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { CHILD } from "./stage.ts";

/** The peer of a connection, as the kernel says now: Node asks once, so another process does. */
export async function peerOf(socket: Socket): Promise<string> {
  const script = `const s = require("net").Socket({ fd: 3 }); console.log(s.remoteAddress + ":" + s.remotePort); process.exit(0)`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit", socket] });
  let said = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (said += text));
  await once(child, "close");
  return said.trim();
}

/** A UDP socket that is connected. */
export class ConnectedUdp {
  readonly #socket: ReturnType<typeof createSocket>;
  #error = "";

  private constructor(socket: ReturnType<typeof createSocket>) {
    this.#socket = socket;
    socket.on("error", (error: NodeJS.ErrnoException) => (this.#error = error.code ?? error.message));
  }

  /** Connect to `address:port`. */
  static async connect(text: string): Promise<ConnectedUdp> {
    const colon = text.lastIndexOf(":");
    const address = text.slice(0, colon);
    const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
    socket.connect(Number(text.slice(colon + 1)), address);
    await once(socket, "connect");
    return new ConnectedUdp(socket);
  }

  /** Connect to `address:port`, and have an answer. */
  static async open(text: string): Promise<ConnectedUdp> {
    const opened = await ConnectedUdp.connect(text);
    await opened.#hear();
    return opened;
  }

  /** The error it has got, or what it hears when it asks again. */
  async fate(): Promise<string> {
    await sleep(50);
    if (this.#error !== "") return this.#error;
    return await this.#hear();
  }

  async #hear(): Promise<string> {
    this.#socket.send("?");
    const [said] = (await once(this.#socket, "message")) as [Buffer];
    return said.toString();
  }
}

/** Sockets of another network namespace, of a process that goes on until it is asked. */
export async function podSays(asked: readonly string[]): Promise<{ fates(): Promise<unknown> }> {
  const args = ["-n", process.execPath, "--conditions=@turnout/source", "--no-warnings", CHILD, asked.join(","), "module", "pod"];
  const child = spawn("unshare", args, { stdio: ["pipe", "pipe", "inherit"] });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  while (!said.includes("connected\n")) await once(child.stdout, "data");
  return {
    async fates(): Promise<unknown> {
      child.stdin.end("?");
      await once(child, "close");
      return JSON.parse(said.replace("connected\n", ""));
    },
  };
}
