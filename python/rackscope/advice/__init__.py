"""From runs, models and a catalogue of servers to what to do, each sentence with what it stands on."""
