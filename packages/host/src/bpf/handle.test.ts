import { fstatSync, openSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { stubLibbpf } from "../test-support/stub-libbpf.ts";
import { guarded, KernelHandle } from "./handle.ts";

/** A file that stands in for a thing of BPF. */
function openFile(): number {
  return openSync("/dev/null", "r");
}

function isOpen(fd: number): boolean {
  try {
    fstatSync(fd);
    return true;
  } catch {
    return false;
  }
}

class Used extends KernelHandle {
  during<T>(call: (fd: number) => Promise<T>): Promise<T> {
    return this.use(call);
  }
}

describe("a handle", () => {
  it("is closed once, and can't be used then", async () => {
    const fd = openFile();
    const handle = new Used(stubLibbpf({}), fd, "map m");
    expect([handle.fd, isOpen(fd)]).toEqual([fd, true]);
    handle.close();
    expect(isOpen(fd)).toBe(false);
    // The number may be another file's by now.
    const other = new Used(stubLibbpf({}), openFile(), "other");
    handle.close();
    expect(isOpen(other.fd)).toBe(true);
    other.close();
    expect(() => handle.fd).toThrow("[not_found] what is closed can't be used: map m");
    await expect(handle.during(async () => 1)).rejects.toThrow("[not_found]");
    expect(() => handle.pin("/sys/fs/bpf/m")).toThrow("[not_found]");
  });

  it("stays open for calls on other threads, until the last of them is through", async () => {
    const fd = openFile();
    const handle = new Used(stubLibbpf({}), fd, "map m");
    const first = Promise.withResolvers<number>();
    const second = Promise.withResolvers<number>();
    const calls = [handle.during(() => first.promise), handle.during(() => second.promise)];
    handle.close();
    first.resolve(1);
    await calls[0];
    expect(isOpen(fd)).toBe(true);
    second.reject(new Error("refused"));
    await expect(calls[1]).rejects.toThrow("refused");
    expect(isOpen(fd)).toBe(false);
  });

  it("is closed when what takes it over throws", () => {
    const fd = openFile();
    const fail = (): never => {
      throw new Error("no map");
    };
    expect(() => guarded(fd, fail)).toThrow("no map");
    expect(isOpen(fd)).toBe(false);
  });
});
