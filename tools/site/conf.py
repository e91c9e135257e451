"""How Sphinx builds the site: Markdown by MyST, the theme furo, each dead link a failure, nothing from elsewhere."""

import gc
import os

gc.set_threshold(100_000, 50, 50)  # pages are trees of nodes, no garbage: to look through them takes a sixth

project = "pallas-kit"
author = "the pallas-kit authors"
release = version = os.environ["SITE_VERSION"]
root_doc = "index"
extensions = ["myst_parser"]
myst_heading_anchors = 6  # as GitHub makes them, so that links hold in both
myst_enable_extensions = ["tasklist"]
exclude_patterns = ["_build"]
templates_path: list[str] = []
html_theme = "furo"
html_title = f"pallas-kit {release}"
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "tango"
pygments_dark_style = "native"
