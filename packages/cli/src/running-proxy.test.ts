import { once } from "node:events";
import { createServer as createBusyServer } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { askProxy, lateError } from "./running-proxy.ts";

/** Accepts, and says nothing: as the kernel does for a process that is stopped. */
let server: Server;
let address: string;

beforeEach(async () => {
  server = createServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
  await once(server, "listening");
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => server.close());

describe("a proxy that is asked", () => {
  it("and hangs is told from one that is not there", async () => {
    const asking = askProxy({ address }, "/turnout/status", new AbortController().signal, { waitMs: 100 });
    await expect(asking).rejects.toMatchObject({
      code: "timed_out",
      what: "the proxy accepts connections but did not answer for 0.1 s: it hangs or is stopped",
    });
  });

  it("and takes its time is waited for as long as it shows that it runs, and given up after three seconds else", async () => {
    const busy = createBusyServer((request, response) => {
      setTimeout(() => response.end('{"kind":"proxy"}'), request.url === "/healthz" ? 0 : 3_500);
    }).listen(0, "127.0.0.1");
    await once(busy, "listening");
    const { port } = busy.address() as AddressInfo;
    const { signal } = new AbortController();
    const [slow, silent] = await Promise.allSettled([
      askProxy({ address: `127.0.0.1:${port}` }, "/turnout/status", signal),
      askProxy({ address }, "/turnout/status", signal),
    ]);
    busy.close();
    expect(slow).toMatchObject({ value: { kind: "proxy" } });
    expect(silent).toMatchObject({ reason: { what: expect.stringContaining("did not answer for 3 s") as unknown } });
  });

  it("and is stopped is told with its process, and what has it go on", () => {
    const { what, hint } = lateError({ ip: "127.0.0.1", port: 10_249 }, { waitMs: 3_000, isConnected: true }, [7]);
    expect(what).toBe("the proxy accepts connections and does not answer: its process is stopped (pid 7, state T)");
    expect(hint).toMatch(/^kill -CONT 7 has it go on; .*turnout doctor/);
  });

  it("and is not there is told with what to do instead", async () => {
    server.close();
    const asking = askProxy({ address }, "/turnout/status", new AbortController().signal, { hint: "ask without it" });
    await expect(asking).rejects.toMatchObject({ code: "not_found", hint: "ask without it" });
  });

  it("and can't be connected to is not taken for one that is not there: nobody there refuses", () => {
    const { code, what, hint } = lateError({ ip: "127.0.0.1", port: 10_249 }, { waitMs: 1_000, isConnected: false }, []);
    expect([code, what]).toEqual(["timed_out", "connecting to the proxy timed out after 1 s"]);
    expect(hint).toContain("rules of a firewall drop packets on loopback");
  });

  it("until somebody ends the command is an operating error, not a defect with its stack", async () => {
    const stop = new AbortController();
    server.once("connection", () => stop.abort());
    await expect(askProxy({ address }, "/turnout/status", stop.signal)).rejects.toMatchObject({ name: "ProxyError", code: "canceled" });
  });
});
