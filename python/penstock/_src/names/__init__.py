"""How names become public: the table, the facades, the names that are refused."""
