// What went wrong, told at the foot of the page until something works again.
const told = document.getElementById("error");

export function fail(error) {
  told.textContent = error.message;
  told.hidden = false;
}

export function succeed() {
  told.hidden = true;
}
