import { changeBytes } from "./change-bytes.ts";
import { changeJson } from "./change-json.ts";
import { changeText } from "./change-text.ts";
import type { Random } from "./random.ts";
import { INPUT_BYTES_MAX } from "./target.ts";
import type { FuzzTarget } from "./target.ts";

/** At most so many changes make one input of another. */
const CHANGES_MAX = 6;

/** Make an input out of one of a corpus, and parts of others. The corpus isn't empty. Pure, but for the random numbers. */
export function mutate(corpus: readonly Buffer[], form: FuzzTarget["form"], random: Random): Buffer {
  let input = random.pick(corpus);
  for (let left = 1 + random.below(CHANGES_MAX); left > 0; left--) {
    const other = random.pick(corpus);
    // JSON is also changed as the text that it is, or nothing would ever fail to parse.
    const as = form === "json" && random.below(8) === 0 ? "text" : form;
    if (as === "bytes") input = changeBytes(input, other, random);
    else if (as === "json") input = changeJson(input, other, random);
    else input = changeText(input, other, random);
    input = input.subarray(0, INPUT_BYTES_MAX);
  }
  return input;
}
