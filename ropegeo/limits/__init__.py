"""Where a head stops: at which length its argmax, its softmax weight, a number format or a window fails."""
