"""The explorer's page: ES modules and style sheets, served as they lie here.

`shared` is what each part of the page needs: the API, the view that the URL tells, elements, canvases. `time` draws
curves and lanes, `cluster` the nodes at the cursor, `panel` why. At the top: the page, the keyboard, the search.

Imports of the modules lead down: only `time/times.js` asks the panel to look again. `files` imports no other module.
"""
