// How grave a line of a log is, where it says so itself. Pure.

import { bare } from "./ansi.js";

const WORD = /(?:^|[\s[(|:])(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)(?=[\s\]):|,]|$)/;
const FIELD = /["\s{,]?\b(?:level|severity|lvl)"?\s*[:=]\s*"?(trace|debug|info|notice|warn|warning|error|fatal|critical)\b/i;
const LOOKED_AT = 160; // characters: a level stands at the beginning
const RANKS = { trace: 0, debug: 0, info: 1, notice: 1, warn: 2, warning: 2, error: 3, fatal: 3, critical: 3 };
export const LEVELS = ["debug", "info", "warning", "error"];

/** 0 debug, 1 info, 2 warning, 3 error; null where the line says nothing of it. */
export function rankOf(line) {
  const begins = bare(line).slice(0, LOOKED_AT);
  const found = WORD.exec(begins) ?? FIELD.exec(begins);
  return found ? RANKS[found[1].toLowerCase()] : null;
}
