// What went wrong, told at the foot of the page until something works again.
const told = document.getElementById("error");

export function fail(error) {
  told.textContent = error.message;
  told.hidden = false;
  for (const awaited of document.querySelectorAll(".reading")) awaited.textContent = "It could not be read.";
}

export function succeed() {
  told.hidden = true;
}
