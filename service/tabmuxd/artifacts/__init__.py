"""Files of clients and answers: kept on disk, with a row each in the store."""
