"""The verbs of the console command, and the composition roots behind them."""
