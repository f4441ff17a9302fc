import { html } from "/assets/vendor/preact.js";
import { COLUMNS, FOR_OPERATORS, liking } from "../liking.js";
import { isOperator } from "../session.js";
import { Menu } from "./menu.js";

/** Table or cards, and which columns. */
export function Display() {
  const { look, columns } = liking.value;
  const setLook = ({ target }) => (liking.value = { ...liking.value, look: target.value });
  const toggle = ({ target: { name, checked } }) =>
    (liking.value = {
      ...liking.value,
      columns: checked ? [...columns, name] : columns.filter((each) => each !== name),
    });
  const radio = (name, words) => html`<label class="check"><input type="radio" name="look" value=${name}
    checked=${look === name} onChange=${setLook} />${words}</label>`;
  const shown = Object.keys(COLUMNS).filter((name) => isOperator.value || !FOR_OPERATORS.includes(name));
  return html`<${Menu} label="Display" kind="display">
    <fieldset><legend>Show jobs as</legend><div class="row">${radio("table", "Table")}${radio("cards", "Cards")}</div></fieldset>
    ${
      look === "table" &&
      html`<fieldset><legend>Columns</legend><div class="picks">${shown.map(
        (name) => html`<label class="check"><input type="checkbox" name=${name} checked=${columns.includes(name)}
        onChange=${toggle} />${COLUMNS[name]}</label>`,
      )}</div></fieldset>`
    }
  </>`;
}
