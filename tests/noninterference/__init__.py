"""Does recording ever change the run?"""
