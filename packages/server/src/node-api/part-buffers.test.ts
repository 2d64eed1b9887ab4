import { describe, expect, test } from "vitest";
import { PartBuffers } from "./part-buffers.ts";

const PART = 65_000;

describe("memory for parts", () => {
  test("is used again when a part is out, and not before", () => {
    const buffers = new PartBuffers();
    const [one, two] = [buffers.allocate(PART), buffers.allocate(PART)];
    expect(one.buffer).not.toBe(two.buffer);
    buffers.release(one);
    const [three, four] = [buffers.allocate(PART - 1), buffers.allocate(PART)];
    expect([three.length, three.buffer === one.buffer, four.buffer === two.buffer]).toEqual([PART - 1, true, false]);
  });

  test("of what is small, or larger than a part, is not kept", () => {
    const buffers = new PartBuffers();
    for (const bytes of [10, 16_383, 70_000, 1_000_000]) {
      const message = buffers.allocate(bytes);
      expect(message).toHaveLength(bytes);
      buffers.release(message);
      expect(buffers.allocate(PART).buffer).not.toBe(message.buffer);
    }
  });

  test("is kept for few parts", () => {
    const buffers = new PartBuffers();
    const messages = Array.from({ length: 40 }, () => buffers.allocate(PART));
    for (const message of messages) buffers.release(message);
    const known = new Set(messages.map(({ buffer }) => buffer));
    expect(Array.from({ length: 40 }, () => known.has(buffers.allocate(PART).buffer)).filter(Boolean)).toHaveLength(32);
  });
});
