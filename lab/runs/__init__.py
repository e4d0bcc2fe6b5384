"""Runs of methods on problems, and the folder that records them.

grid            which runs are wanted
runner          one run
record          one finished run as a line of JSON
store           the folder of records
machine         versions, revision and processor of a run
local, cluster  the engines: processes of this machine, or a Ray cluster
events          what an engine reports
progress        how many runs are finished, and the time left
display, live_board, listing    what a person sees
"""
