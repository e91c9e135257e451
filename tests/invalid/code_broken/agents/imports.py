import nosuchlib

print(nosuchlib)
