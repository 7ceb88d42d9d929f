"""Chat sites as data: a descriptor each, and the one page script that reads them."""
