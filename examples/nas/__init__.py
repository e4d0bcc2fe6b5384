"""A search for a small convolutional network on your images; README.md says how to run it and how to change it.

cell            31 bits to the graph of a cell, and to the architecture that it computes
shape           the network of three such cells: its sizes and its operations
network         the network in torch, several copies side by side
training        training, and the images to train on
digits, cifar10 two data sets
objective       the value of a cell
cache           a file that remembers accuracies
search          the search with carbo
"""
