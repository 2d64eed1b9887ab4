import { describe, expect, it } from "vitest";
import { RevisionLog } from "./revision-log.ts";

describe("a revision log", () => {
  it("tells which keys changed since a revision, the newest first, each once", () => {
    const log = new RevisionLog(1);
    for (const [revision, key] of ["a", "b", "a", "c"].entries()) log.add(revision + 2, key, undefined, 3);
    expect([...log.since(1).keys()]).toEqual(["c", "a", "b"]);
    expect([...log.since(4).keys()]).toEqual(["c"]);
    expect(log.since(5).size).toBe(0);
  });

  it("remembers each key once, at its newest revision, when it gets long", () => {
    const log = new RevisionLog(1, 10);
    for (let revision = 2; revision < 1_000; revision++) log.add(revision, `k${revision % 5}`, undefined, 5);
    expect(log.size).toBeLessThanOrEqual(21);
    expect(log.reaches(1)).toBe(true);
    expect([...log.since(1).keys()].toSorted()).toEqual(["k0", "k1", "k2", "k3", "k4"]);
    expect([...log.since(997).keys()].toSorted()).toEqual(["k3", "k4"]);
  });

  it("forgets the oldest half when keys come and go, and says how far back it reaches", () => {
    const log = new RevisionLog(1, 10);
    for (let revision = 2; revision < 100; revision++) log.add(revision, `k${revision}`, undefined, 0);
    expect(log.size).toBeLessThanOrEqual(21);
    expect([log.reaches(1), log.reaches(50), log.reaches(95)]).toEqual([false, false, true]);
    expect([...log.since(95).keys()].toSorted()).toEqual(["k96", "k97", "k98", "k99"]);
  });

  it("reaches to no revision that is half forgotten, however many changes one has", () => {
    const log = new RevisionLog(1, 10);
    log.add(2, "before", undefined, 0);
    for (let index = 0; index < 100; index++) log.add(3, `k${index}`, undefined, 0);
    expect([log.reaches(1), log.reaches(2), log.reaches(3)]).toEqual([false, false, true]);
    log.add(4, "after", undefined, 0);
    expect([...log.since(3).keys()]).toEqual(["after"]);
  });

  it("joins the notes of a key's changes for an answer, and folds them for good when it gets long", () => {
    const log = new RevisionLog<string>(1, 2, { join: (a, b) => `${a}+${b}`, fold: (a, b) => `(${a},${b})` });
    log.add(2, "a", "1", 1);
    log.add(3, "a", "2", 1);
    log.add(4, "a", "3", 1);
    expect([log.since(1).get("a"), log.since(2).get("a")]).toEqual(["1+2+3", "2+3"]);
    log.add(5, "b", "4", 1);
    log.add(6, "a", "5", 1);
    expect([log.size, log.reaches(1)]).toEqual([2, true]);
    expect([...log.since(1)]).toEqual([
      ["a", "(1,(2,(3,5)))"],
      ["b", "4"],
    ]);
  });

  it("keeps the note of the latest change where nothing says how to join them", () => {
    const log = new RevisionLog<number>(1);
    log.add(2, "a", 1, 1);
    log.add(3, "a", 2, 1);
    expect(log.since(1).get("a")).toBe(2);
  });
});
