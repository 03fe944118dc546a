// Pages work without this file: it draws the tables of class "plot" as curves.
"use strict";
