"""Set-up scripts: what a checkout needs beside Python."""
